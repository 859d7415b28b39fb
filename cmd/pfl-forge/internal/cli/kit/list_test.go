package kit_test

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

// What a list is given arrives whole, a line break and a quotation mark included: whoever
// checks the values has to see them.
func TestListVar(t *testing.T) {
	var got []string
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	kit.ListVar(set, &got, "label", []string{"default"}, "")
	err := set.Parse([]string{"--label", "a,b", "--label", "c\nd", "--label", `say "e"`})
	if want := []string{"a", "b", "c\nd", `say "e"`}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if shown := set.Lookup("label").DefValue; shown != "default" {
		t.Errorf("the default is shown as %q", shown)
	}
}
