// Package testsize says how much of a long test, or of a suite, to run.
//
// Tests that grow with a number (seeds, kills, edits by hand, rounds) have two sizes. By default
// a test is as small as it can be and still show that it works, so that go test work is
// quick on any machine. With PFL_FORGE_TEST=full it is as large as it has to be to find what is
// rare; the make targets of the long suites set it, and .ci/run calls them. Of a suite
// whose tests take long one by one, the core has both sizes, and [OnlyFull] marks the rest.
package testsize

import (
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Variable is the environment variable that asks for full sizes.
const Variable = "PFL_FORGE_TEST"

// Full reports whether tests are to run in full size.
func Full() bool { return os.Getenv(Variable) == "full" }

// OnlyFull skips a test in the quick size. It is for tests of a suite whose core is run
// in both sizes. Nothing is skipped in the full size.
func OnlyFull(t testing.TB) {
	t.Helper()
	if !Full() {
		t.Skipf("only with %s=full, as in make test-all", Variable)
	}
}

// Of returns the size of a test: quick, or full if that is asked for.
func Of(quick, full int) int {
	if Full() {
		return full
	}
	return quick
}

// First returns the first quick elements of a list of cases, or all of them if the full
// size is asked for.
func First[T any](quick int, cases []T) []T {
	return cases[:Of(min(quick, len(cases)), len(cases))]
}

// PartVariable is the environment variable that asks for a part of long lists of
// cases, such as 2/3 for the second of three parts. Where the time is bounded,
// commit after commit can have another part, and all of them have all cases.
const PartVariable = "PFL_FORGE_TEST_PART"

// Part returns the cases of the part that is asked for: every third, from the
// second on, for 2/3. Without one it returns all.
func Part[T any](t testing.TB, cases []T) []T {
	t.Helper()
	text := os.Getenv(PartVariable)
	if text == "" {
		return cases
	}
	first, of, _ := strings.Cut(text, "/")
	part, err := strconv.Atoi(first)
	parts, err2 := strconv.Atoi(of)
	if err != nil || err2 != nil || part < 1 || part > parts {
		t.Fatalf("%s is %q; want a part such as 2/3", PartVariable, text)
	}
	var list []T
	for i := part - 1; i < len(cases); i += parts {
		list = append(list, cases[i])
	}
	return list
}

// Checks lets the properties of a test be tried quick times, or full times if that is
// asked for, unless the flag -rapid.checks says otherwise.
func Checks(t testing.TB, quick, full int) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue {
		return
	}
	if err := f.Value.Set(strconv.Itoa(Of(quick, full))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
}
