// Package diagnosis has the findings of doctor's checks.
package diagnosis

// Health is the outcome of a check. Only Broken counts for the exit code.
type Health string

// The outcomes.
const (
	Healthy Health = "ok"
	Warning Health = "warn" // works, but look at it
	Broken  Health = "fail" // does not work
)

// Finding is the outcome of a check with its details, as programs read it.
// Scripts read these, so that the names of fields and checks stay.
type Finding struct {
	// Check names it in one word or two, and is the same whatever was found.
	Check  string `json:"check"  yaml:"check"`
	Health Health `json:"health" yaml:"health"`
	// Detail says what was found, and may hold text of others, which is made
	// safe when it is printed.
	Detail string `json:"detail,omitempty" yaml:"detail,omitempty"`
	// Hint says what a person can do; it is empty where there is nothing to do.
	Hint string `json:"hint,omitempty" yaml:"hint,omitempty"`
}

// New returns a Finding of a check, with a detail and a hint, which may be empty.
func New(check string, health Health, detail, hint string) Finding {
	return Finding{Check: check, Health: health, Detail: detail, Hint: hint}
}
