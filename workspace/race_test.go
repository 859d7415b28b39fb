package workspace

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// A person saves at any moment while the runner reads and writes without a
// pause: each version is decided before the next one replaces it.
func TestPersonAndRunnerAtOnce(t *testing.T) {
	const saves = 40
	d, j := newDesk(t), newJournal(t)
	d.linger = 0
	d.put(draftsDir+"/fix-login.md", "text\n")
	j.run(d)
	decided := make(chan string, 10*saves)
	person := make(chan error, 1)
	go func() { person <- saveInTurn(d, saves, decided) }()
	deadline := time.After(time.Minute)
	for told := 0; ; {
		select {
		case err := <-person:
			if err != nil {
				t.Fatal(err)
			}
			return
		case <-deadline:
			t.Fatalf("an edit is not decided; titles %q; file:\n%s", j.titles, d.text(fixLogin))
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
	}
}

// saveInTurn retitles the intent by hand, again when the last title was decided.
func saveInTurn(d *desk, n int, decided <-chan string) error {
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
