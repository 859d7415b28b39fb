package wire

import (
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
)

// Each variable's struct is like its message. They are planned when they are first used, here all
// at once.
func TestVariables(t *testing.T) {
	for name, use := range map[string]func() error{
		"Events":    func() error { _, err := Events.Marshal(&forge.Event{}); return err },
		"Commands":  func() error { _, err := Commands.Marshal(&forge.Command{}); return err },
		"Results":   func() error { _, err := Results.Marshal(&forge.Result{}); return err },
		"Records":   func() error { _, err := Records.Marshal(&forge.Record{}); return err },
		"summaries": func() error { _, err := summaries.Marshal(&forge.Summary{}); return err },
		"Rulings":   func() error { _, err := Rulings.Marshal(&forge.Ruling{}); return err },
		"Progress":  func() error { _, err := Progress.Marshal(&forge.Progress{}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := use(); err != nil {
				t.Error(err)
			}
		})
	}
}
