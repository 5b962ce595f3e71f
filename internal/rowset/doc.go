// Package rowset is the contract between the layers that hold rows and the layers
// that use them: what a rowset can be asked ([RowSet]), how its rows are read
// ([ScanSpec], [Iterator]), how keys are resolved ([Keys], [Found]), what a writer
// of rowsets is given ([Source]) and how a rowset on disk is described ([Meta]).
//
// memrowset and diskrowset implement RowSet; tablet uses it; compaction and the
// manifest use Meta. None of the types here does I/O by itself.
package rowset
