// Package diff is the command that shows the change of an attempt as it is stored beside its
// transcript: the one that the journal names, whether or not a repository is at hand.
//
// It reads the whole change at once, where a client by HTTP reads it by page: a
// person pipes it into a pager or a program.
//
// Names and lines were written by others. Everything that is printed goes through package term; in
// the data formats they are as they are.
package diff

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/complete"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Command returns the command diff. The flags are fields of the document that asks
// (document.DiffRequest), so that the limits of each are checked where a gateway checks them, and
// in the same words.
func Command(a *kit.App) *cobra.Command {
	var req document.DiffRequest
	var step string
	var format render.Format
	cmd := &cobra.Command{
		Use:   "diff <id>",
		Short: "show the change of an attempt",
		Example: "  pfl-forge diff reset-link\n  pfl-forge diff reset-link-001 --attempt 1 --stat\n" +
			"  pfl-forge diff reset-link --step implement --attempt 2 --since 1",
		Args:              kit.Between(1, 1, "the id of an intent or a task"),
		ValidArgsFunction: complete.IntentsAndTasks(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Step = forge.Step(step)
			return show(cmd.Context(), a, args[0], req, format)
		},
	}
	set := cmd.Flags()
	set.StringVar((*string)(&req.Task), "task", "", "the `id` of the task; needed where several changed something")
	set.StringVar(&step, "step", "", "only of this `step`: implement, execute or rebase")
	set.IntVar(&req.Attempt, "attempt", 0, "the `number` of the attempt; default: the newest that changed something")
	set.IntVar(&req.Since, "since", 0, "the `number` of a former attempt: show what the two changes do not have in common")
	set.StringVar(&req.Whitespace, "whitespace", "", "`off` leaves out the lines that the change alters in white space alone, and says how many these are")
	set.BoolVar(&req.Stat, "stat", false, "files and counts, without the lines")
	kit.OutputFlag(cmd, &format)
	return cmd
}

// show prints the change that a request names, as a whole. The argument names the task, or an
// intent of which one task changed something: which attempt is meant then is decided where the
// journal is read. --stat drops the lines here; they have been read.
func show(ctx context.Context, a *kit.App, arg string, req document.DiffRequest, format render.Format) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	v, task, err := t.Find(ctx, arg)
	if err != nil {
		return err
	}
	req.Intent = v.Intent.ID
	if task != nil {
		req.Task = task.ID
	}
	for _, e := range req.Check() {
		return kit.Usage(fmt.Errorf("--%s: %s", e.Field, e.Reason))
	}
	d, err := t.Diff(ctx, req)
	if errors.Is(err, bus.ErrNotFound) {
		return target.NoIntent(req.Intent)
	}
	if err != nil {
		return err
	}
	if req.Stat {
		for i := range d.Files {
			d.Files[i].Hunks = nil
		}
	}
	if format.Data() {
		return format.Write(a.Out, d)
	}
	Print(a, &d)
	return nil
}

// Print prints a change: first one line that says which change this is, by the id of its patch and
// both commits, then each file with its lines.
//
// Lines that are left out for their white space are counted below the first line. Where the diff
// cannot be shown to be the whole change with this id, the words NOT PROVEN and the reason come
// before any line of it.
func Print(a *kit.App, d *document.Diff) {
	fmt.Fprintf(a.Out, "%s %d of %s, patch %.12s, %.10s to %.10s", d.Step, d.Attempt, d.Task, d.PatchID, d.Base, d.Head)
	if s := d.Since; s != nil {
		fmt.Fprintf(a.Out, ",\nsince attempt %d, patch %.12s, %.10s to %.10s, the same in %s", s.Attempt, s.PatchID, s.Base, s.Head, render.Count(s.Same, "file"))
	}
	fmt.Fprintf(a.Out, ": %s, +%d -%d\n", render.Count(d.FileCount, "file"), d.Added, d.Deleted)
	if d.Hidden > 0 {
		fmt.Fprintf(a.Out, "%d lines of it are altered in white space alone, and not shown.\n", d.Hidden)
	}
	if d.Since != nil && d.Since.Rebased {
		fmt.Fprintln(a.Out, "The change stands on another base since then, so the lines around it may differ for that reason alone.\n"+
			"A line that only moved, to a place with the same lines around it, is not shown.")
	}
	if !d.Proven {
		fmt.Fprintln(a.Out, "NOT PROVEN: "+term.Line(d.Note))
	}
	for i := range d.Files {
		printFile(a, &d.Files[i])
	}
}

// printFile prints a file of a change: no name and no line of it is longer than one line, or more
// than text. All that is special about the file stands in its first line, after its kind of change
// and its path. Hunks have git's form.
func printFile(a *kit.App, f *document.DiffFile) {
	about := []string{fmt.Sprintf("%s %s +%d -%d", f.Status, term.Line(f.Path), f.Added, f.Deleted)}
	for _, more := range []struct {
		is   bool
		text string
	}{
		{f.OldPath != "", "from " + term.Line(f.OldPath)},
		{f.Binary, "binary"},
		{f.Status == "mode", f.OldMode + " to " + f.NewMode},
		{f.Planned != nil && !*f.Planned, "not in the plan"},
		{f.Hidden > 0, fmt.Sprintf("%d lines in white space alone", f.Hidden)},
		{f.Since == "dropped", "which is not in the change any more"},
		{f.Since == "added", "which was not in the former change"},
		{f.Was != nil, was(f.Was)},
		{f.Cut != "", term.Line(f.Cut)},
	} {
		if more.is {
			about = append(about, more.text)
		}
	}
	fmt.Fprintln(a.Out, strings.Join(about, ", "))
	for _, h := range f.Hunks {
		fmt.Fprintln(a.Out, strings.TrimRight(fmt.Sprintf("@@ -%d,%d +%d,%d @@ %s", h.OldStart, h.OldLines, h.NewStart, h.NewLines, term.Line(h.Section)), " "))
		for _, l := range h.Lines {
			column := marks[l.Since]
			if f.Since == "" {
				column = ""
			}
			fmt.Fprintln(a.Out, column+l.Op+strings.ReplaceAll(term.Sanitize(l.Text), "\n", " "))
			if l.NoEnd {
				fmt.Fprintln(a.Out, `\ no line end`)
			}
		}
	}
}

// marks begin the lines of a comparison with a former attempt, before the line's own sign: a space
// for a line that both changes have, a plus for one of this change alone, a minus for one of the
// former. Without a comparison there is no such column.
var marks = map[string]string{"": " ", "added": "+", "dropped": "-"}

// was says how the former change of a comparison treated a file, as in "was modified 100644
// 100755". The modes are there if the former change altered them. It is empty for no file of that
// change.
func was(w *document.DiffWas) string {
	if w == nil {
		return ""
	}
	text := "was " + w.Status
	if w.OldMode != "" || w.NewMode != "" {
		text += strings.TrimRight(" "+w.OldMode+" "+w.NewMode, " ")
	}
	if w.Binary {
		text += " binary"
	}
	return text
}
