package imports

// exceptions lists who misses a bound of rules still, and why. It only shrinks: an
// entry that is not needed any more fails the test, and so does a figure that has
// become worse than the entry.
var exceptions = []exception{
	{"lines", ".", 3060, "a third of the vocabulary is comments, each field with its contract"},
}
