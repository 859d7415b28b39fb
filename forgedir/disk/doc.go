// Package disk reads, writes and moves files below .forge and .e8.
//
// A person works in these folders at the same time, and may leave anything there: a
// symbolic link, a named pipe, a file of a gigabyte, a file that is saved right now.
// So no path leads out of the two folders, nothing that is read is waited for or
// larger than its limit, and a file is put in place by a rename or a swap, never by
// writing into it. Only [Disk.Append] writes into a file that is in place.
//
// The package knows no versions: package projection decides which file may be
// replaced. Paths are those of package layout.
package disk
