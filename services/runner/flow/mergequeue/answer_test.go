package mergequeue

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// TestAnswerIsKept: what is kept of an answer is told again as it was, out of a
// snapshot as well, where an ordinary one is short.
func TestAnswerIsKept(t *testing.T) {
	all := &forge.MergeEnded{Executor: forge.Executor("e1"), Failure: &forge.Failure{Message: "no"}, Task: "a-001", Number: 2, Look: 3}
	all.Result = &forge.MergeResult{
		Outcome: forge.MergeDone, Commit: "c", Parent: "p", Tree: "t", PatchID: "i", Files: []string{"f"}, Verify: &forge.VerifyReport{Command: "v"},
		Candidate: &forge.Rebase{}, Refusal: "r", Branch: "b", BaseBranch: "m", Pull: &forge.PullRequest{}, Unproven: "u", Batch: []forge.Rebase{{}},
	}
	for _, v := range []reflect.Value{reflect.ValueOf(*all), reflect.ValueOf(*all.Result)} {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("the test says nothing of %s", v.Type().Field(i).Name)
			}
		}
	}
	done := &forge.MergeEnded{Task: "a-001", Number: 1, Result: &forge.MergeResult{Outcome: forge.MergeDone, Commit: "c"}}
	for _, a := range []*forge.MergeEnded{all, done, {Task: "a-001", Number: 1}} {
		data, err := json.Marshal(keep(a))
		if err != nil {
			t.Fatal(err)
		}
		var read Answer
		if err := json.Unmarshal(data, &read); err != nil || !reflect.DeepEqual(read.message(), a) {
			t.Errorf("%+v, %v; want %+v", read.message(), err, a)
		}
		if a == done && string(data) != `{"Task":"a-001","Number":1,"Result":{"Outcome":"merged","Commit":"c"}}` {
			t.Errorf("%s", data)
		}
	}
}
