package subjects

import (
	"fmt"

	forge "github.com/pfl-forge/pfl-forge"
)

// EveryIntake matches the entries of all forges. They belong to no project:
// limits of intake count over all that a forge's rules name.
const EveryIntake = "forge.intake.*"

// Intake is where the entries of a forge are stored, in one order.
func Intake(forgeName string) (string, error) {
	if _, err := forge.ParseProjectID(forgeName); err != nil {
		return "", fmt.Errorf("name of a forge %.70q: use a-z, 0-9 and hyphens", forgeName)
	}
	return "forge.intake." + forgeName, nil
}
