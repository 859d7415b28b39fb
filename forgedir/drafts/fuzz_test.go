package drafts

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
)

// FuzzDraft: a draft is an intent that is valid and that the runner has not
// decided on, or problems that name the file and say why.
func FuzzDraft(f *testing.F) {
	for _, s := range []string{
		"---\ntitle: t\n---\nbody", "\ufeff---\r\ntitle: t\r\ndepends_on: [a]\r\n---\r\nbody\r\n", "# Heading #\ntext",
		"---\ntitle: t\n", "---\nrisk: low\npower: [x]\n---\n\n",
		"---\ncriteria: [c]\ngoal: {max_iterations: 3}\n---\nb", "---\nrecipe: r\nparams: {a: b}\n---\n\u202etext",
	} {
		f.Add("fix-login.md", []byte(s))
		f.Add("\u5909\u66f4.md", []byte(s))
	}
	r := Reader{Project: "demo", Actor: "person", Refusals: person.Refusals{}}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if name == "" || strings.ContainsAny(name, "/\x00") || !strings.HasSuffix(strings.ToLower(name), ".md") || len(data) > disk.MaxDraft {
			return // no file that is read as a draft
		}
		in := &person.Input{Path: layout.Shown(layout.Drafts + "/" + name), Source: person.Source{Rel: layout.Drafts + "/" + name, Content: disk.DigestOf(data)}}
		intent, problems := r.parse(in, data, time.Unix(1, 0))
		for _, p := range problems {
			if p.Path == "" || p.Reason == "" || p.Line < 0 || p.Line > strings.Count(string(data), "\n")+strings.Count(string(data), "\r")+2 {
				t.Errorf("problem %+v", p)
			}
		}
		if len(problems) > 0 {
			return
		}
		if e := intent.Validate(); e != nil || intent.Project != "demo" || intent.Status != "proposed" || intent.Source != "human" {
			t.Errorf("%q became %+v: %v", data, intent, e)
		}
		if !utf8.ValidString(intent.Title) || !utf8.ValidString(intent.Body) || strings.Contains(intent.Body, "\r") {
			t.Errorf("text %q, %q", intent.Title, intent.Body)
		}
	})
}
