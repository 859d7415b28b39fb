package knowledge

import (
	"testing"

	"github.com/pfl-forge/pfl-forge/services/runner/flow/knowledge"
)

// FuzzParse: a file of a person has pieces of knowledge that the project takes,
// each id once, or it is refused with a reason.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"id":"k1","content":"c"}` + "\n" + `{"content":"d","confidence":"low"}`))
	f.Add([]byte(`[{"id":"k1","content":"c"},{"id":"k1","content":"d"}]`))
	f.Add([]byte(`{"content":"\u202e"} null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parse("f", data)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a reason")
			}
			return
		}
		ids := map[string]bool{}
		for i := range list {
			if e := knowledge.Validate(&list[i]); e != nil || list[i].ID != "" && ids[list[i].ID] {
				t.Errorf("%q has %+v", data, list[i])
			}
			ids[list[i].ID] = true
		}
	})
}
