// Package show is how the programs of this module present what they measured: numbers
// with three digits, charts as SVG and PNG, and the machine they ran on.
package show
