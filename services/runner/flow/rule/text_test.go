package rule_test

import (
	"testing"

	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

func TestCause(t *testing.T) {
	for output, want := range map[string]string{
		"": "",
		"ok  \tshop\t0.1s\n--- FAIL: TestForm (0.00s)\n    form_test.go:7: got 1\nFAIL\nFAIL\tshop/form\t0.2s\nFAIL\n": "--- FAIL: TestForm (0.00s)",
		"building\n./main.go:3:1: undefined: x\nmake: *** [Makefile:2: test] Error 1\n":                                "./main.go:3:1: undefined: x",
		"sort: GLOSSARY.txt:4: disorder: greeting\n":                                                                   "sort: GLOSSARY.txt:4: disorder: greeting",
		"exit status 1\n": "",
	} {
		if got := rule.Cause(output); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}
