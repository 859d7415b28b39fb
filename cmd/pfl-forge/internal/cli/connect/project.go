package connect

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// namedProjects is how many projects an error or a table names.
const namedProjects = 20

// Project returns the project that --project names, or otherwise that of the
// repository at hand, which is empty without one. One is needed.
func Project(a *kit.App, here forge.ProjectID) (forge.ProjectID, error) {
	if a.Project != "" {
		id, err := forge.ParseProjectID(a.Project)
		if err != nil {
			return "", kit.Usage(fmt.Errorf("--project: %w", err))
		}
		return id, nil
	}
	if here == "" {
		return "", kit.Usage(errors.New("--project is missing: give the id of one of the organisation's projects"))
	}
	return here, nil
}

// Meant returns a question after the project that was probably meant, by its spelling, to be put
// behind the name in an error; empty if none of the known ones is close.
func Meant(p forge.ProjectID, known []forge.ProjectID) string {
	names := make([]string, len(known))
	for i := range known {
		names[i] = string(known[i])
	}
	if best := strictyaml.Closest(string(p), names); best != "" {
		return fmt.Sprintf(", did you mean %q?", best)
	}
	return ""
}

// Listed returns the names of projects, separated by commas, and how many more there are: not more
// than a person reads.
func Listed(list []forge.ProjectID) string {
	var names []string
	for _, p := range list[:min(len(list), namedProjects)] {
		names = append(names, string(p))
	}
	text := strings.Join(names, ", ")
	if more := len(list) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
