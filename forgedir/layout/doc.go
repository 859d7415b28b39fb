// Package layout names the files and folders of local mode. It touches none of them.
//
// Paths are written with slashes and without a leading one. Those below .e8, the
// folder of goals, begin with that name; all others are paths inside .forge.
// [Shown] turns either into a path from the repository's root, for people.
package layout
