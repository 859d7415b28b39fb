// Command testreport reads the output of go test -json on its standard input and prints what
// a person wants to know of it: the line of each package, the output of the tests that failed
// or were skipped, and at the end how many passed, failed and were skipped.
//
//	go test -json work | testreport
//
// It exits with 1 if a test failed, if one was skipped (in CI nothing may be), or if no test
// ran at all. The known reporters, such as gotestsum, accept skipped tests.
package main

import (
	"fmt"
	"os"
)

func main() {
	totals, err := report(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, totals)
	if !totals.good() {
		os.Exit(1)
	}
}
