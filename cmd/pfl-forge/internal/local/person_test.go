package local

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir"
)

// journaled observes a run and remembers which marks came into the log.
type journaled struct {
	quietly

	mu    sync.Mutex
	marks map[string]int
}

var markShape = regexp.MustCompile(`mark-[0-9]+[a-z]`)

func (j *journaled) Decided(_, _ *forge.Summary, rec *forge.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range rec.Events {
		for _, text := range wordsOf(&rec.Events[i]) {
			for _, mark := range markShape.FindAllString(text, -1) {
				j.marks[mark]++
			}
		}
	}
}

func wordsOf(ev *forge.Event) []string {
	var words []string
	if e := forge.As[*forge.Edit](ev.Message); e != nil {
		for _, s := range []*string{e.Title, e.Body, e.Type} {
			if s != nil {
				words = append(words, *s)
			}
		}
	}
	if answer := forge.As[*forge.Answer](ev.Message); answer != nil {
		words = append(words, answer.Answer)
	}
	if submit := forge.As[*forge.Submit](ev.Message); submit != nil {
		words = append(words, submit.Intent.Body)
	}
	return words
}

func (j *journaled) count(mark string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.marks[mark]
}

func (j *journaled) all() map[string]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.marks)
}

type fate string

const (
	taken   fate = "taken"   // it is in the log
	refused fate = "refused" // and the text is where it was
)

// edit is one save by hand.
type edit struct {
	n       int
	kind    string
	how     string
	rel     string   // of the file, below .forge
	text    string   // as it was saved
	marks   []string // of the parts that are to be taken in, all or none
	comment string   // a mark that no event carries
	never   bool     // it cannot be taken in
	fate    fate
}

func (e *edit) String() string {
	return fmt.Sprintf("edit %d (%s of %s, %s)", e.n, e.kind, e.rel, e.how)
}

// sheet is a file that the person edits, one save at a time.
type sheet struct {
	rel     string
	edit    *edit  // nil: the person may edit it
	mending bool   // the person removed it, and waits for it to come back
	buffer  string // an older version, open in an editor
	// overtaken says that another answer was given since the buffer was read.
	overtaken bool
}

// person edits the files of a run by hand, at random.
type person struct {
	t        *testing.T
	repo     *Repository
	rng      *rand.Rand
	log      *journaled
	commands *Session // of another process

	sheets    []*sheet
	known     map[string]bool // sheets, by path
	edits     []*edit
	drafts    int
	scribbled []scribbled // that are not taken back yet

	moves, made, taken, refused, shown, removed, commanded int
}

func (p *person) path(rel string) string {
	return filepath.Join(p.repo.Root, ".forge", filepath.FromSlash(rel))
}

func (p *person) read(rel string) (string, bool) {
	text, err := os.ReadFile(p.path(rel))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.t.Fatal(err)
	}
	return string(text), err == nil
}

func (p *person) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// keptText returns everything that was kept of the person's versions.
func (p *person) keptText() string {
	var b strings.Builder
	p.must(filepath.WalkDir(p.path("kept"), func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(name)
		b.Write(text)
		return err
	}))
	return b.String()
}

func (p *person) busy() bool {
	return len(p.scribbled) > 0 || slices.ContainsFunc(p.sheets, func(s *sheet) bool { return s.edit != nil || s.mending })
}

func (p *person) left() {
	for _, s := range p.sheets {
		if s.edit == nil && !s.mending {
			continue
		}
		now, _ := p.read(s.rel)
		p.t.Errorf("%s: mending %t, %v: nobody took it in or refused it; the file is now\n%s\nand was saved as\n%v", s.rel, s.mending, s.edit, now, s.edit)
	}
	for _, s := range p.scribbled {
		now, _ := p.read(s.rel)
		p.t.Errorf("%s is not taken back, or not kept; the file is now\n%s", s, now)
	}
	list, _ := p.repo.Problems()
	p.t.Errorf("problems: %v", list)
}

// scribbled is a mark in a file that is only shown.
type scribbled struct{ rel, mark string }

// look sees what became of the edits, and says whether anything did.
func (p *person) look() bool {
	list, err := p.repo.Problems()
	p.must(err)
	problems := map[string]forgedir.Problem{}
	for _, x := range list {
		problems[strings.TrimPrefix(x.Path, ".forge/")] = x
	}
	moved := p.takenBack()
	for _, s := range p.sheets {
		problem, wrong := problems[s.rel]
		switch {
		case s.mending:
			if _, back := p.read(s.rel); back && !wrong {
				s.mending, moved = false, true
			}
		case s.edit != nil:
			moved = p.judge(s, wrong, partial(problem)) || moved
		}
	}
	return moved
}

// takenBack sees whether files that are only shown say again what is true, and
// what the person wrote there is kept.
func (p *person) takenBack() bool {
	if len(p.scribbled) == 0 {
		return false
	}
	kept := p.keptText()
	n := len(p.scribbled)
	p.scribbled = slices.DeleteFunc(p.scribbled, func(s scribbled) bool {
		now, there := p.read(s.rel)
		return there && !strings.Contains(now, s.mark) && strings.Contains(kept, s.mark)
	})
	return len(p.scribbled) < n
}

// partial reports whether a problem may be that of a part of a text, read while the
// rest was still being written.
func partial(p forgedir.Problem) bool {
	return strings.HasPrefix(p.Hint, "fix it") || strings.HasPrefix(p.Hint, "if it is complete") || p.Hint == "resolve the conflict and remove the markers"
}

// judge decides whether the edit of a sheet was taken in, or refused.
func (p *person) judge(s *sheet, wrong, partial bool) bool {
	e := s.edit
	now, there := p.read(s.rel)
	n := 0
	for _, mark := range e.marks {
		n += min(p.log.count(mark), 1)
	}
	switch {
	case wrong && now == e.text && (e.never || !partial):
		e.fate = refused
		p.refused++
		p.mend(s)
	case there && now != e.text && n == len(e.marks) && !wrong:
		if e.never {
			p.t.Errorf("%s was not refused; the file is now\n%s", e, now)
		}
		e.fate = taken
		p.taken++
		s.edit = nil
	default:
		return false
	}
	return true
}

// mend removes a file that was refused, to have it written again.
func (p *person) mend(s *sheet) {
	p.must(os.Remove(p.path(s.rel)))
	s.edit, s.mending = nil, true
}

func (p *person) mark() string { return fmt.Sprintf("mark-%d", p.made) }

// draft asks for another intent; the first ones are no edits.
func (p *person) draft(recipe string, first bool) {
	id := intentOf(p.drafts)
	p.drafts++
	text := fmt.Sprintf("---\nrecipe: %s\n---\nThe change %s\n\nas ever\n", recipe, id)
	if !first {
		text += p.mark() + "z\n"
		p.edits = append(p.edits, &edit{n: p.made, kind: "draft", rel: "intent-drafts/" + string(id) + ".md", marks: []string{p.mark() + "z"}, fate: taken})
	}
	p.must(os.MkdirAll(p.path("intent-drafts"), 0o755))
	p.must(os.WriteFile(p.path("intent-drafts/"+string(id)+".md"), []byte(text), 0o644))
	// Its file comes when it was taken in.
	p.sheets = append(p.sheets, &sheet{rel: "intents/" + string(id) + ".yaml", mending: true})
}

// act makes one edit, if there is a file to edit.
func (p *person) act() bool {
	var free []*sheet
	for _, s := range p.sheets {
		if s.edit == nil && !s.mending {
			free = append(free, s)
		}
	}
	if len(free) == 0 {
		return false
	}
	s := free[p.rng.IntN(len(free))]
	switch p.rng.IntN(20) {
	case 0:
		p.must(os.Remove(p.path(s.rel)))
		s.mending = true
		p.removed++
	case 1:
		p.draft([]string{"ask", "risky", "plain"}[p.rng.IntN(3)], false)
	case 2:
		if !p.scribble() {
			return false
		}
	case 3, 4:
		if !p.command(s) {
			return false
		}
	case 5:
		if len(p.scribbled) > 0 {
			return false
		}
		folder := p.path([]string{"work", "reviews", "knowledge"}[p.rng.IntN(3)])
		if err := os.Rename(folder, filepath.Join(p.t.TempDir(), "away")); errors.Is(err, fs.ErrNotExist) {
			return false
		} else if err != nil {
			p.t.Fatal(err)
		}
		p.removed++
	default:
		if !p.save(s) {
			return false
		}
	}
	p.made++
	return true
}
