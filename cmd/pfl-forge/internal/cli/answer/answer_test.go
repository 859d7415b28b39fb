package answer

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

func TestChooseQuestion(t *testing.T) {
	yes := "yes"
	asked := func(answers ...*string) *forge.Intent {
		i := &forge.Intent{ID: "x"}
		for _, a := range answers {
			i.Clarifications = append(i.Clarifications, forge.Clarification{Question: "q", Answer: a})
		}
		return i
	}
	for name, test := range map[string]struct {
		intent *forge.Intent
		args   []string
		index  int
		text   string
		bad    bool
	}{
		"the only one":        {asked(nil), []string{"a"}, 0, "a", false},
		"the only open one":   {asked(&yes, nil, &yes), []string{"a"}, 1, "a", false},
		"by number":           {asked(nil, nil), []string{"2", "a"}, 1, "a", false},
		"answered, by number": {asked(&yes), []string{"1", "a"}, 0, "a", false},
		"which one":           {asked(nil, nil), []string{"a"}, 0, "", true},
		"none open":           {asked(&yes), []string{"a"}, 0, "", true},
		"none at all":         {asked(), []string{"a"}, 0, "", true},
		"number too large":    {asked(nil), []string{"2", "a"}, 0, "", true},
		"zero":                {asked(nil), []string{"0", "a"}, 0, "", true},
		"no number":           {asked(nil), []string{"a", "b"}, 0, "", true},
	} {
		index, text, err := chooseQuestion(test.intent, test.args)
		if (err != nil) != test.bad || index != test.index || text != test.text {
			t.Errorf("%s: %d, %q, %v", name, index, text, err)
		}
	}
}
