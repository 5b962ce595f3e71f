//go:build !unix

package minikudu

// defaultOpenFiles is the number of rowset files kept open.
func defaultOpenFiles() int { return 512 }
