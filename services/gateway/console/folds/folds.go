// Package folds divides the lines of a transcript into blocks, of which a page
// shows the first line and folds the others. It is pure.
//
// The console's page of a transcript calls Of with one page of lines. Every
// line is in exactly one block, and keeps the number by which it can be linked.
package folds

import "github.com/pfl-forge/pfl-forge/document"

// Block is a run of lines.
type Block struct {
	// Head is the line that is shown; Lines follow it, folded.
	Head  Line
	Lines []Line
}

// Line is a line with its place on the page, by which it can be linked.
type Line struct {
	document.TranscriptLine
	N int
}

// Of returns lines as blocks: it puts the output of a command behind the line
// that says that it ran.
func Of(lines []document.TranscriptLine) (list []Block) {
	for i, l := range lines {
		one := Line{l, i + 1}
		if n := len(list); n > 0 && (l.Kind == "output" || l.Kind == "usage" || l.Kind == "command_ended") {
			list[n-1].Lines = append(list[n-1].Lines, one)
			continue
		}
		list = append(list, Block{Head: one})
	}
	return list
}
