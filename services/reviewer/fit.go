package reviewer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/agent/prompt"
)

// Bounds of a change that is shown in a prompt only, in bytes unless it says otherwise.
const (
	// maxFitted bounds the diff in a judge's prompt, in bytes.
	maxFitted = 192 << 10
	// leastFitted is the least that is shown of a file, in bytes, if any is.
	leastFitted = 2 << 10
	// maxLeft bounds the files that are named as not shown whole.
	maxLeft = 200
)

// fitted is as much of a change as fits into a prompt.
type fitted struct {
	Diff string
	// Left are files that are not shown whole, with how much is.
	Left []string
	// MoreLeft counts such files that are not named.
	MoreLeft int
	Binary   []string
}

// fit returns all files of a change if they fit, else the beginning of the largest.
// Files that people write come first; generated ones get what room is left.
func fit(files []filePatch) fitted {
	visible := slices.Clone(files)
	for i := range visible {
		visible[i].text = prompt.Visible(visible[i].text)
	}
	var f fitted
	written, generated, binary := divide(visible)
	f.Binary = binary
	room := f.add(written, maxFitted, "")
	f.add(generated, room, " (lock file, or generated)")
	return f
}

// add adds files, and returns the room that is left, in bytes.
func (f *fitted) add(files []filePatch, room int, note string) int {
	var b strings.Builder
	b.WriteString(f.Diff)
	most := max(share(files, room), leastFitted)
	for _, p := range files {
		text := beginning(p.text, min(most, room))
		room -= len(text)
		b.WriteString(text)
		if len(text) == len(p.text) {
			continue
		}
		what := "nothing of it is shown"
		if text != "" {
			what = fmt.Sprintf("the first %d of %d lines are shown", strings.Count(text, "\n"), strings.Count(p.text, "\n"))
		}
		f.say(fmt.Sprintf("%s +%d -%d%s: %s", prompt.Path(p.path), p.added, p.deleted, note, what))
	}
	f.Diff = b.String()
	return room
}

// leave names files of which nothing is shown.
func (f *fitted) leave(paths ...string) {
	for _, p := range paths {
		f.say(prompt.Path(p) + ": nothing of it is shown")
	}
}

// say adds a line about a file that is not shown whole.
func (f *fitted) say(what string) {
	if len(f.Left) == maxLeft {
		f.MoreLeft++
		return
	}
	f.Left = append(f.Left, what)
}

// share returns how many bytes each file may have, so that small ones are whole and
// all together fit.
func share(files []filePatch, room int) int {
	var sizes []int
	for _, p := range files {
		sizes = append(sizes, len(p.text))
	}
	slices.Sort(sizes)
	for i, n := range sizes {
		if each := room / (len(sizes) - i); n > each {
			return each
		}
		room -= n
	}
	return math.MaxInt
}

// beginning returns the first bytes of a patch, bounded by most, in whole lines if there are any;
// empty if that is too little to be useful.
func beginning(text string, most int) string {
	if len(text) <= most {
		return text
	}
	if most < leastFitted {
		return ""
	}
	if i := strings.LastIndexByte(text[:most], '\n'); i > most/2 {
		return text[:i+1]
	}
	for most--; !utf8.RuneStart(text[most]); {
		most--
	}
	return text[:most] + "\n" // the line is too long
}
