package implementer

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// A fix has to have a test that fails without it. Those that lie have one that passes anyway, only
// delete tests, or have none.
func TestFixIsProved(t *testing.T) {
	t.Parallel()
	const verify = "verify: ['for t in *.test.sh; do sh ./$t || exit 3; done']\n"
	for _, tt := range []struct {
		name, review string
		files        map[string]string
		kind         string
		passed       bool   // the report
		proof        string // the end of its output, or "shown"; empty if there is none
	}{
		{"a test that fails without it", "require", map[string]string{"a.txt": "fixed\n", "b.test.sh": "grep -q fixed a.txt\n"}, "fix", true, "shown"},
		{
			"a test that passes on base", "require",
			map[string]string{"a.txt": "fixed\n", "b.test.sh": "true\n"},
			"fix", false,
			"pass also without the change: b.test.sh",
		},
		{
			"a test whose exit code is masked", "require",
			map[string]string{"a.txt": "fixed\n", "b.test.sh": "grep -q fixed a.txt || true\n"},
			"fix", false,
			"pass also without the change: b.test.sh",
		},
		{"no test", "require", map[string]string{"a.txt": "fixed\n"}, "fix", false, "the change has no test: it touches no file of review.test_files"},
		{
			"no test, and the reviewer is told", "inform",
			map[string]string{"a.txt": "fixed\n"},
			"fix", true,
			"the change has no test: it touches no file of review.test_files",
		},
		{"nobody looks", "off", map[string]string{"a.txt": "fixed\n"}, "fix", true, ""},
		{"no fix", "require", map[string]string{"a.txt": "fixed\n"}, "feature", true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			base := w.repo.Commit("as it was", map[string]string{
				"pfl-forge.yaml": verify + "review: {proof: " + tt.review + "}\n", "a.txt": "broken\n", "a.test.sh": "true\n",
			})
			w.repo.Git("checkout", "-q", "-b", "change")
			head := w.repo.Commit("the fix", tt.files)
			w.repo.Git("checkout", "-q", "main")
			c := command(forge.StepRebase, 1)
			c.Intent.Type, c.Task.Base, c.Task.Head = tt.kind, string(base), string(head)
			got := w.imp.rebase(t.Context(), c, silent)
			rb := forge.As[*forge.Rebase](got.Output)
			if got.Failure() != nil || rb == nil || rb.Verify == nil {
				t.Fatalf("%+v, %+v", got.Failure(), rb)
			}
			if rb.Verify.Passed != tt.passed {
				t.Errorf("%+v", rb.Verify)
			}
			p := rb.Verify.Proof
			switch {
			case tt.proof == "" || p == nil:
				if (p == nil) != (tt.proof == "") {
					t.Errorf("the proof is %+v", p)
				}
			case tt.proof == "shown":
				if !p.Passed || p.ExitCode != 3 || p.Tree == rb.Tree {
					t.Errorf("the proof is %+v", p)
				}
			case p.Passed || !strings.HasSuffix(p.Output, tt.proof):
				t.Errorf("the proof is %+v", p)
			}
			if !tt.passed && !strings.Contains(rb.Verify.Output, "needs a test that fails without it") {
				t.Errorf("the author is told %q", rb.Verify.Output)
			}
		})
	}
}
