package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"slices"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/costs"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/files"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/gantt"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/health"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/phrase"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/proof"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/visible"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

//go:embed pages
var pages embed.FS

// templates has a template for each page. They are html/template's, so a value stands where it
// stands as text; no function returns HTML, and no value is of a type that is trusted.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"reveal": visible.Reveal, "cut": visible.Cut, "words": phrase.State, "ended": phrase.Ended, "asked": phrase.Asked, "way": phrase.Way,
	"usd": costs.USD, "count": costs.Count, "plural": phrase.Count,
	"mark": phrase.Mark, "besides": phrase.Besides,
	"unnamed": files.Unplanned, "old": proof.Old, "proves": proof.Regression, "hidden": visible.Hidden, "side": phrase.Side,
	"generated": files.Generated, "folded": files.Folded, "at": files.At, "place": (*files.View).Place,
	"has": slices.Contains[[]string], "spanned": gantt.Named, "barred": gantt.Class, "legend": gantt.Legend, "lasted": gantt.Lasted,
	"day":      func(t time.Time) string { return t.UTC().Format(time.DateOnly) },
	"moment":   func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"monthday": func(t time.Time) string { return t.UTC().Format("2 Jan") },
	"second":   func(t time.Time) string { return t.UTC().Format("15:04:05") },
	"op":       func(op string) string { return map[string]string{"+": "add", "-": "del"}[op] },
	"iso":      func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"clock":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
	"age":      func(time.Time) string { return "" }, // a console has its own clock
	"past":     func(time.Time) bool { return false },
	"flaky":    health.Flaky, "seconds": health.Words,
	"pair":  func(a, b any) any { return struct{ First, Second any }{a, b} },
	"sum":   func(a, b int) int { return a + b },
	"short": func(s string) string { return s[:min(len(s), 12)] },
	"risks": func() []forge.Risk { return []forge.Risk{forge.RiskLow, forge.RiskMed, forge.RiskHigh} },
}).ParseFS(pages, "pages/*.html"))

// pagesOf returns the templates with a clock. They are never executed
// themselves, after which there would be no copy of them.
func pagesOf(now func() time.Time) *template.Template {
	return template.Must(templates.Clone()).Funcs(template.FuncMap{
		"age":  func(at time.Time) string { return phrase.Age(now().Sub(at)) },
		"past": func(at time.Time) bool { return !now().Before(at) },
	})
}

// stampOf returns a hash of files.
func stampOf(files fs.FS) string {
	h := sha256.New()
	_ = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			data, _ := fs.ReadFile(files, name) // it is part of the program
			fmt.Fprintf(h, "%s %d\n%s", name, len(data), data)
		}
		return err
	})
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// frame is around every page.
type frame struct {
	// Title stands in the window's head.
	Title string
	// Here is the address of the page in the navigation.
	Here string
	// Stamp is part of the addresses of static files.
	Stamp string
	// Who is signed in, and Token the name of the entry; empty where no one is.
	Who, Token string
	// Own says that it is a person's own console, and Running whether a run goes on there.
	Own, Running bool
	// Audits says that there is a listed project that they may audit.
	Audits bool
	// Live are the projects whose changes the page's script waits for.
	Live []forge.ProjectID
	// Unfollowed are those of the page that it does not wait for.
	Unfollowed []forge.ProjectID
	// Page has the data of the page itself.
	Page any
}

// frameOf returns the frame of a page.
func frameOf(v *visit, title string, page any) frame {
	f := frame{Title: term.Short(term.Visible(title), 120), Here: v.r.URL.Path, Stamp: v.console.stamp, Page: page}
	if own := v.console.cfg.Own; own != nil {
		f.Own, f.Running = true, own.Running
	}
	if v.token != nil {
		f.Who, _ = v.token.Holder()
		f.Token, f.Audits = v.token.Name, len(v.console.auditable(v.token)) > 0
		f.Live, f.Unfollowed = v.live[:min(len(v.live), mostLive)], v.live[min(len(v.live), mostLive):]
	}
	return f
}

// show answers with a page.
func (v *visit) show(status int, name, title string, page any) error {
	var b bytes.Buffer
	if err := v.console.pages.ExecuteTemplate(&b, name, frameOf(v, title, page)); err != nil {
		return err
	}
	write(v, status, b.Bytes())
	return nil
}

// write answers with the whole of a page, or says that it is the one which the
// browser has: most of what changes in a project alters nothing of what a
// person looks at, and then there is nothing to send, to read and to compare.
func write(v *visit, status int, page []byte) {
	sum := sha256.Sum256(page)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	v.w.Header().Set("ETag", tag)
	if status == http.StatusOK && v.r.Header.Get("If-None-Match") == tag {
		v.w.WriteHeader(http.StatusNotModified)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(page) // whoever asked may have gone
}

// refuse answers with a page that says why there is nothing else.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, t *tokens.Token, status int, words string) {
	v := &visit{console: c, w: w, r: r, token: t}
	if err := v.show(status, "refused", http.StatusText(status), words); err != nil {
		c.cfg.Log.ErrorContext(r.Context(), "a page cannot be made", "error", err)
		http.Error(w, words, status)
	}
}

// merged returns the projects of two lists, sorted, each once.
func merged(a, b []forge.ProjectID) []forge.ProjectID {
	list := slices.Concat(a, b)
	slices.Sort(list)
	return slices.Compact(list)
}
