package forgedir

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// author edits files by hand and remembers what must not get lost.
type author struct {
	d      *fixture
	count  int
	marks  map[string]string // by mark: the path that it was written to
	buffer string            // an older version of the intent's file, open in an editor
	handle *os.File          // of the file in place, to be written late
	late   string
}

func (p *author) mark() string {
	p.count++
	return fmt.Sprintf("mark-%d-", p.count)
}

// saves records that the person puts a text in place of what is there.
func (p *author) saves(rel, text string) {
	if exists(p.d.t, p.d.file(rel)) {
		p.overwrites(rel, p.d.text(rel), text)
	}
	p.notes(rel, text)
}

func (p *author) notes(rel, text string) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\n' || r == '"' }) {
		if strings.HasPrefix(word, "mark-") {
			p.marks[word] = rel
		}
	}
}

// overwrites forgets the marks that the person replaces on purpose.
func (p *author) overwrites(rel, before, after string) {
	for mark, at := range p.marks {
		if at == rel && strings.Contains(before, mark) && !strings.Contains(after, mark) {
			delete(p.marks, mark)
		}
	}
}

func (p *author) retitled(text string) string {
	_, rest, ok := strings.Cut(text, "\n")
	if !ok || !strings.HasPrefix(text, "title: ") {
		return text
	}
	return "title: " + p.mark() + "\n" + rest
}

// restart begins the next run, on the same file system.
func (p *author) restart() {
	noSwap := p.d.disk.NoSwap
	p.d.reopen()
	p.d.disk.NoSwap = noSwap
}

func (p *author) lost(j *journal) []string {
	all := p.d.everything()
	var lost []string
	for mark := range p.marks {
		found := slices.ContainsFunc(j.titles, func(s string) bool { return strings.Contains(s, mark) })
		for name, text := range all {
			found = found || strings.Contains(text, mark) && !under(name, layout.Cache)
		}
		if !found {
			lost = append(lost, mark)
		}
	}
	return lost
}

// Whatever a person and the runner do to the files, in whatever order, with
// crashes in between: no text of the person is ever lost.
func TestNoEditIsLost(t *testing.T) {
	testsize.Checks(t, 20, 100)
	rapid.Check(t, func(rt *rapid.T) {
		d := &fixture{t: t, root: t.TempDir()}
		d.reopen()
		defer func() { _ = d.Close() }()
		d.disk.NoSwap = rapid.Bool().Draw(rt, "without swaps")
		j := newJournal(t)
		d.put(layout.Drafts+"/fix-login.md", "text\n")
		j.run(d)
		p := &author{d: d, marks: map[string]string{}}
		rt.Repeat(p.actions(t, j))
		p.finish()
		d.reopen()
		d.disk.Linger = 0
		j.read(d)
		j.write(d)
		d.reopen()
		if lost := p.lost(j); len(lost) > 0 {
			rt.Errorf("lost %v of %v; titles %v", lost, p.marks, j.titles)
			for name, text := range d.everything() {
				rt.Logf("== %s\n%s", name, text)
			}
		}
	})
}

func (p *author) actions(t *testing.T, j *journal) map[string]func(*rapid.T) {
	t.Helper()
	d := p.d
	there := func(rt *rapid.T, rel string) string {
		if !exists(t, d.file(rel)) {
			rt.Skip("no file")
		}
		return d.text(rel)
	}
	save := func(rt *rapid.T, rel, text string) {
		p.saves(rel, text)
		if rapid.Bool().Draw(rt, "by a rename") {
			d.save(rel, text)
		} else {
			d.put(rel, text)
		}
	}
	return map[string]func(*rapid.T){
		"person opens an editor": func(rt *rapid.T) { p.buffer = there(rt, fixLogin) },
		"person saves the editor": func(rt *rapid.T) {
			if p.buffer == "" {
				rt.Skip("none open")
			}
			p.buffer = p.retitled(p.buffer)
			save(rt, fixLogin, p.buffer)
		},
		"person retitles":  func(rt *rapid.T) { save(rt, fixLogin, p.retitled(there(rt, fixLogin))) },
		"person comments":  func(rt *rapid.T) { save(rt, fixLogin, there(rt, fixLogin)+"# "+p.mark()+"\n") },
		"person breaks it": func(rt *rapid.T) { save(rt, fixLogin, "[ "+p.mark()+" "+there(rt, fixLogin)) },
		"person sets done": func(rt *rapid.T) {
			save(rt, fixLogin, strings.Replace(p.retitled(there(rt, fixLogin)), "status: proposed", "status: done", 1))
		},
		"person removes it": func(rt *rapid.T) {
			p.overwrites(fixLogin, there(rt, fixLogin), "")
			if err := os.Remove(d.file(fixLogin)); err != nil {
				rt.Fatal(err)
			}
		},
		"person notes in a task": func(rt *rapid.T) {
			const rel = "work/fix-login-001.yaml"
			save(rt, rel, there(rt, rel)+"# "+p.mark()+"\n")
		},
		"person starts to write in place": func(rt *rapid.T) {
			p.finish()
			p.late = p.retitled(there(rt, fixLogin))
			f, err := os.OpenFile(d.file(fixLogin), os.O_WRONLY, 0)
			if err != nil {
				rt.Fatal(err)
			}
			p.handle = f
		},
		"person ends to write in place": func(*rapid.T) { p.finish() },
		"runner changes": func(rt *rapid.T) {
			v := j.views["fix-login"]
			v.Summary.Reason = fmt.Sprint("reason ", j.seq)
			v.Tasks = []forge.Task{{ID: forge.NewTaskID("fix-login", rapid.IntRange(1, 2).Draw(rt, "task")), Attempts: int(j.seq)}}
			j.change(v)
		},
		"runner reads":  func(*rapid.T) { j.read(d) },
		"runner writes": func(*rapid.T) { j.write(d) },
		"runner starts": func(*rapid.T) { p.restart() },
		"runner dies": func(rt *rapid.T) {
			left := rapid.IntRange(0, 12).Draw(rt, "after")
			d.disk.Reached = func(point string) {
				if left--; left < 0 {
					panic(crash{point})
				}
			}
			dies(func() { j.run(d) })
			p.restart()
		},
		"person saves while the runner works": func(rt *rapid.T) {
			left := rapid.IntRange(0, 12).Draw(rt, "after")
			d.disk.Reached = func(string) {
				if left--; left == -1 && exists(t, d.file(fixLogin)) {
					save(rt, fixLogin, p.retitled(d.text(fixLogin)))
				}
			}
			j.read(d)
			j.write(d)
			d.disk.Reached = func(string) {}
		},
		"person saves while the runner decides": func(rt *rapid.T) {
			j.between = func() {
				if exists(t, d.file(fixLogin)) {
					save(rt, fixLogin, p.retitled(d.text(fixLogin)))
				}
			}
			j.read(d)
			j.between = func() {}
			j.write(d)
		},
		"time passes": func(rt *rapid.T) {
			d.disk.Linger = rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(rt, "linger")
		},
	}
}

// finish writes through a handle that was opened some time ago. What the file
// holds now is what the person replaces.
func (p *author) finish() {
	if p.handle == nil {
		return
	}
	defer func() { p.handle = nil }()
	info, err := p.handle.Stat()
	if err != nil {
		p.d.t.Fatal(err)
	}
	if place, err := os.Lstat(p.d.file(fixLogin)); err == nil && os.SameFile(info, place) {
		p.saves(fixLogin, p.late)
	} else if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 0 {
		p.notes(fixLogin, p.late) // it was swapped out, a moment ago
	}
	if err := p.handle.Truncate(0); err != nil {
		p.d.t.Fatal(err)
	}
	if _, err := p.handle.WriteString(p.late); err != nil {
		p.d.t.Fatal(err)
	}
	if err := p.handle.Close(); err != nil {
		p.d.t.Fatal(err)
	}
}
