package bus_test

import (
	"testing"

	"github.com/pfl-forge/pfl-forge/bus/codec"
)

// The struct of each codec is like its message, down to the last field.
func TestVariables(t *testing.T) {
	t.Parallel()
	if n := codec.PlanAll(); n < 8 {
		t.Errorf("%d codecs planned; there are at least 8", n)
	}
}
