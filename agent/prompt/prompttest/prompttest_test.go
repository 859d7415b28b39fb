package prompttest_test

import (
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/prompt/prompttest"
)

func TestTokens(t *testing.T) {
	for text, want := range map[string]int{
		"":                      0,
		"Read the code, twice.": 6,
		"internationalization":  3,
		"12345":                 2,
		"{\"a\":[1]}\n":         5,
		"one\ntwo\n\n\nthree":   4,
	} {
		if got := prompttest.Tokens(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
