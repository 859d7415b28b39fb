package console_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/console"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/console/consoletest"
)

// The test binary is the program on the terminal, if this is in its environment.
const play = "CONSOLE_TEST_PLAY"

func TestMain(m *testing.M) {
	scene := os.Getenv(play)
	if scene == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := scenes[scene](ctx)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case errors.Is(err, console.ErrInterrupted), interrupted:
		os.Exit(130)
	case err != nil:
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

var scenes = map[string]func(context.Context) error{
	"screen": func(ctx context.Context) error { return screen(ctx, func(console.Key) {}) },
	"panic": func(ctx context.Context) error {
		return screen(ctx, func(k console.Key) {
			if k.Is('!') {
				panic("on purpose")
			}
		})
	},
	"talk": talk,
}

// screen shows the size and the last key until q.
func screen(ctx context.Context, press func(console.Key)) error {
	c, ok := console.Open(os.Stdin, os.Stdout)
	if !ok {
		return errors.New("no terminal")
	}
	defer c.Close()
	s, err := c.Screen()
	if err != nil {
		return err
	}
	defer s.Close()
	last := ""
	for {
		columns, rows := s.Size()
		lines := []string{fmt.Sprintf("%d by %d", columns, rows), "last: " + last}
		for i := 2; i < rows; i++ {
			lines = append(lines, fmt.Sprintf("line %d", i+1))
		}
		s.Draw(lines)
		k, pressed, err := s.Next(ctx, time.Minute)
		if err != nil {
			return err
		}
		if pressed {
			press(k)
			last = fmt.Sprintf("%d %c", k.Name, max(k.Rune, ' '))
			if k.Is('q') {
				return nil
			}
		}
	}
}

// talk asks for keys and lines in turns.
func talk(ctx context.Context) error {
	c, ok := console.Open(os.Stdin, os.Stdout)
	if !ok {
		return errors.New("no terminal")
	}
	defer c.Close()
	for {
		fmt.Println("key?")
		k, err := c.Key(ctx)
		if errors.Is(err, io.EOF) {
			fmt.Println("end")
			return nil
		}
		if err != nil {
			return err
		}
		text, err := c.Line(ctx, fmt.Sprintf("after %c> ", k.Rune))
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		fmt.Printf("[%s] %v\n", text, err)
	}
}

func start(t *testing.T, scene string) *consoletest.Terminal {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), play+"="+scene)
	term, err := consoletest.Start(cmd, 60, 12)
	if err != nil {
		t.Fatal(err)
	}
	return term
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantEnd(t *testing.T, term *consoletest.Terminal, want int) {
	t.Helper()
	code, err := term.End()
	must(t, err)
	if code != want {
		t.Fatalf("exit code %d, want %d; on the screen:\n%s", code, want, term.Screen())
	}
}

// A screen follows the terminal's size, and whatever ends it leaves the terminal as it
// was.
func TestScreen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scene string
		end   func(*consoletest.Terminal) error
		code  int
	}{
		"end":    {"screen", func(term *consoletest.Terminal) error { return term.Type("q") }, 0},
		"ctrl-c": {"screen", func(term *consoletest.Terminal) error { return term.Type("\x03") }, 130},
		"signal": {"screen", func(term *consoletest.Terminal) error { return term.Signal(syscall.SIGTERM) }, 130},
		"panic":  {"panic", func(term *consoletest.Terminal) error { return term.Type("!") }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			term := start(t, c.scene)
			must(t, term.Await(`^60 by 12(.|\n)*^line 12$`))
			must(t, term.Type("x"))
			must(t, term.Await(`^last: 0 x$`))
			must(t, term.Resize(40, 8))
			must(t, term.Await(`^40 by 8(.|\n)*^line 8$`))
			must(t, term.Type("\x1b"))
			must(t, term.Await(fmt.Sprintf(`^last: %d`, console.Escape)))
			must(t, c.end(term))
			wantEnd(t, term, c.code)
		})
	}
}

// Keys and lines take turns; nothing that was typed ahead is lost.
func TestTalk(t *testing.T) {
	t.Parallel()
	term := start(t, "talk")
	must(t, term.Await(`^key\?$`))
	must(t, term.Type("ahey\rb"))
	// A terminal echoes what comes before the program reads keys.
	must(t, term.Await(`(?:^|b)after a> hey\n\[hey\] <nil>\nkey\?\nafter b>`))
	must(t, term.Type("you\x7f\x7fes 世\r"))
	must(t, term.Await(`^\[yes 世\] <nil>\nkey\?$`))
	must(t, term.Type("c\x04"))
	must(t, term.Await(`^\[\] EOF\nkey\?$`))
	must(t, term.Type("\x04"))
	must(t, term.Await(`^end$`))
	wantEnd(t, term, 0)

	term = start(t, "talk")
	must(t, term.Await(`^key\?$`))
	must(t, term.Type("a"))
	must(t, term.Await(`^after a>`))
	must(t, term.Type("x\x03"))
	wantEnd(t, term, 130)
}
