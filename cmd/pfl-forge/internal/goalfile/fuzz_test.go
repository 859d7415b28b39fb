package goalfile

import (
	"errors"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// FuzzParse: a task.yaml is a goal that an intent may have, or is refused with a list of reasons.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"task: t\ncriteria: [c]", "task: t\ncriteria: [c]\nmax_iterations: 3\npersist: ../x\nlogging: {raw_log: true, raw_log_dir: /x}",
		"task: t\ncriteria: [c]\nclaude_options: {allowed_tools: [Read], model: m, output_format: json}\nprompts: {judgment: j, append_system_prompt: s}",
		"task: ' '",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := Parse("task.yaml", data)
		if err != nil {
			list, ok := errors.AsType[strictyaml.Errors](err)
			if !ok || len(list) == 0 {
				t.Fatalf("error is %T: %v", err, err)
			}
			for _, e := range list {
				if e.Reason == "" || e.File != "task.yaml" {
					t.Errorf("%+v", e)
				}
			}
			return
		}
		if e := validate(g); e != nil || g.Task == "" || len(g.Criteria) == 0 {
			t.Errorf("taken: %+v, %v", g, e)
		}
	})
}
