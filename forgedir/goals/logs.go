package goals

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
)

// writeLogs writes a log of each iteration that is summed up: its attempts of execute,
// which are those that came after the one of the iteration before. A log that is there
// stays as it is, and one whose transcripts are gone is left out.
func (w *Writer) writeLogs(v *forge.View, dir string) error {
	if v.Intent.Goal == nil || !v.Intent.Goal.RawLog || len(v.Tasks) == 0 {
		return nil
	}
	first := 1
	for i := range v.Goal.Iterations {
		it := &v.Goal.Iterations[i]
		if it.Summary == nil {
			continue
		}
		rel := path.Join(dir, string(v.Intent.ID), fmt.Sprintf("iteration-%03d.jsonl", it.Number))
		if err := w.writeLog(rel, v, first, it.Attempt); err != nil {
			return err
		}
		first = it.Attempt + 1
	}
	return nil
}

// writeLog writes the transcripts of some attempts, first to last, into one file. It is
// complete when it appears. Transcripts that are missing or cannot be read are left out:
// a log is a help for people, and no goal waits for it.
func (w *Writer) writeLog(rel string, v *forge.View, first, last int) error {
	if w.Disk.Exists(rel) {
		return nil
	}
	var log []byte
	for n := first; n <= last; n++ {
		a := forge.Attempt{Task: v.Tasks[0].ID, Step: forge.StepExecute, Number: n}
		text, _, err := w.Disk.Read(path.Join(layout.Logs, transcript.FileName(v.Intent.ID, a)), disk.MaxOther)
		if disk.IgnoreMissing(err) != nil {
			w.Log.Warn("cannot read a transcript", "iteration", rel, "error", err)
		}
		log = append(log, text...)
	}
	if len(log) == 0 {
		return nil
	}
	if err := w.makeFolder(rel); err != nil {
		return err
	}
	next := path.Join(layout.Staging, "iteration"+disk.Fresh)
	if err := w.Disk.Write(next, log); err != nil {
		return err
	}
	w.Disk.Reached("log staged")
	if err := w.Disk.MoveNew(next, rel); errors.Is(err, fs.ErrExist) { // a person was quicker
		return w.Disk.Remove(next)
	} else if err != nil {
		return err
	}
	w.Disk.Reached("log installed")
	return w.Disk.Sync(path.Dir(rel))
}
