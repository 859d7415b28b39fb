package imports

// beforeRule is the reason for comments that were written before there was a rule.
const beforeRule = "not yet: written before the rule"

// exceptions lists who misses a bound of rules still, and why. It only shrinks: an
// entry that is not needed any more fails the test, and so does a figure that has
// become worse than the entry.
var exceptions = []exception{
	{"fields", "forgedir.Workspace", 23, "not yet: each of its folders becomes a type of its own"},

	{"methods", "forgedir.Workspace", 91, "not yet: each of its folders becomes a type of its own"},

	{"lines", "forgedir", 4509, "not yet: one document model"},

	{"files", "forgedir", 39, "not yet: one document model"},

	{"riddles", "forgedir", 27, beforeRule},
	{"riddles", "forgedir/schematest", 2, beforeRule},

	{"comments", "./...", 11, beforeRule},
}
