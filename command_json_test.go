package forge_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
)

// Commands are the same after they were written as JSON and read back, with every
// type of input.
func TestCommandAsJSON(t *testing.T) {
	for _, in := range append(forge.Inputs(), nil, &forge.AnalyzeInput{PolicyOnly: true}, &forge.MergeInput{Change: &forge.QueueMerge{Head: "h"}}) {
		c := forge.Command{Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: 2}, Session: "s", Input: in}
		data, err := json.Marshal(&c)
		if err != nil {
			t.Fatal(err)
		}
		var again forge.Command
		if err := json.Unmarshal(data, &again); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if diff := cmp.Diff(c, again); diff != "" {
			t.Errorf("%T (-written +read):\n%s", in, diff)
		}
	}
	if err := json.Unmarshal([]byte(`{"InputType":"Unknown"}`), &forge.Command{}); err == nil {
		t.Error("an unknown type of input was read")
	}
}
