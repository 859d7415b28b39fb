package records

import "github.com/pfl-forge/pfl-forge"

// checkDoc is a check of the project that a reviewer asked for.
type checkDoc struct {
	// ID is the one by which evidence can cite it, beside the name.
	ID   string `yaml:"id"`
	Name string `yaml:"name"`
	// Command is the command line; empty if none ran.
	Command string `yaml:"command,omitempty"`
	// Passed says that it exited with 0.
	Passed bool `yaml:"passed"`
	// ExitCode is -1 if it was ended, or did not run.
	ExitCode int `yaml:"exit_code"`
	// Output is the end of what it printed, if it did not pass.
	Output string `yaml:"output,omitempty"`
}

func checkDocs(runs []forge.CheckRun) []checkDoc {
	var list []checkDoc
	for i := range runs {
		r := &runs[i]
		list = append(list, checkDoc{r.ID, r.Name, r.Command, r.Passed, r.ExitCode, r.Output})
	}
	return list
}
