package cause_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/services/runner/flow/cause"
)

func TestLine(t *testing.T) {
	many := strings.Repeat("ok  \tshop/a\t0.1s\n", 30)
	for output, want := range map[string]string{
		"": "",
		"ok  \tshop\t0.1s\n--- FAIL: TestForm (0.00s)\n    form_test.go:7: got 1\nFAIL\nFAIL\tshop/form\t0.2s\nFAIL\n": "--- FAIL: TestForm (0.00s)",
		many + "FAIL: TestX\n" + many: "FAIL: TestX",
		"building\n./main.go:3:1: undefined: x\nmake: *** [Makefile:2: test] Error 1\n": "./main.go:3:1: undefined: x",
		"sort: GLOSSARY.txt:4: disorder: greeting\n":                                    "sort: GLOSSARY.txt:4: disorder: greeting",
		"exit status 1\n":        "",
		strings.Repeat("x", 300): strings.Repeat("x", 200) + " ...",
	} {
		if got := cause.Line(output); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}

func TestGist(t *testing.T) {
	for message, want := range map[string]string{
		"":                    "",
		"it timed out\nafter": "it timed out",
		"\"make\" exited with status 2:\nline\npanic: nil map\nline":                    `panic: nil map ("make" exited with status 2)`,
		"\"" + strings.Repeat("long ", 20) + "\" exited with status 2:\nline 1\nline 2": "line 2 (exited with status 2)",
		"\"make\" exited with status 2:\nexit status 2":                                 `"make" exited with status 2`,
		"verify failed: FAIL: TestX\n\"make\" failed:\nFAIL: TestX":                     "verify failed: FAIL: TestX",
	} {
		if got := cause.Gist(message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}
