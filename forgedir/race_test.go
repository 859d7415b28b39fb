package forgedir

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// A person saves at any moment while the runner reads and writes without a
// pause: each version is decided before the next one replaces it.
func TestPersonAndRunnerAtOnce(t *testing.T) {
	const saves = 40
	d, j := newFixture(t), newJournal(t)
	d.disk.Linger = 0
	d.put(layout.Drafts+"/fix-login.md", "text\n")
	j.run(d)
	decided := make(chan string, 10*saves)
	person := make(chan error, 1)
	go func() { person <- saveInTurn(d, saves, decided) }()
	told := 0
	round := func() bool {
		select {
		case err := <-person:
			if err != nil {
				t.Fatal(err)
			}
			return true
		default:
		}
		j.read(d)
		for ; told < len(j.titles); told++ {
			decided <- j.titles[told]
		}
		v := j.views["fix-login"]
		v.Summary.Reason = fmt.Sprint("reason ", j.seq)
		j.change(v)
		j.write(d)
		return false
	}
	wait.Moving(t, "every edit is decided", func() bool {
		for range 100 { // without a pause
			if round() {
				return true
			}
		}
		return false
	}, func() int { return told })
}

// saveInTurn retitles the intent by hand, again when the last title was decided.
func saveInTurn(d *fixture, n int, decided <-chan string) error {
	for i := range n {
		before, err := os.ReadFile(d.file(fixLogin))
		if err != nil {
			return err
		}
		_, rest, ok := strings.Cut(string(before), "\n")
		if !ok {
			return errors.New("the file is torn:\n" + string(before))
		}
		title := fmt.Sprint("title ", i)
		name := d.file("intents/.mine")
		if err := os.WriteFile(name, []byte("title: "+title+"\n"+rest), 0o644); err != nil {
			return err
		}
		if err := os.Rename(name, d.file(fixLogin)); err != nil {
			return err
		}
		for got := range decided {
			if got == title {
				break
			}
		}
	}
	return nil
}
