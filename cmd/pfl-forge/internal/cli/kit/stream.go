package kit

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// Width returns how many columns the terminal behind a stream has, and 0 if the stream is
// no terminal.
func Width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		return 80
	}
	return columns
}

// plain reports whether a terminal can or should show nothing but lines.
func (a *App) plain() bool {
	return a.Getenv("TERM") == "dumb" || a.Getenv("CI") != ""
}

// Style returns the colours for a stream. It has none unless the stream is a terminal
// that can show them and NO_COLOR is unset.
func (a *App) Style(w io.Writer) render.Style {
	return render.Style{Colour: Width(w) > 0 && !a.plain() && a.Getenv("NO_COLOR") == ""}
}

// Live returns a view on standard error of the work that goes on. The caller closes it.
func (a *App) Live() *render.Live {
	screen := render.Screen{Out: a.Err, Style: a.Style(a.Err)}
	if !a.plain() && Width(a.Err) > 0 {
		screen.Width = func() int { return Width(a.Err) }
	}
	return render.NewLive(screen)
}
