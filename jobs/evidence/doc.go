// Package evidence looks up, in exactly the tree that is judged, the evidence that
// reviewers and judges cite for their claims. Whether a piece resolves is decided by code.
//
//	kind     ref                    resolves if
//	file     path:line, path:1-9    the quote stands on those lines of the tree
//	diff     path:line, path:1-9    the quote stands on lines there that the change adds; if each of
//	                                its lines begins with -, on lines of the base that it removes
//	diff     path                   the change adds or changes that file, which has no lines (no quote)
//	command  name or id of a run    every such run on exactly this tree passed; the quote, if any, is in the output
//	absence  path                   nothing has that path (no quote)
//	absence  path, or .             no regular file at or below it has the quote, which is one line
//
// White space at the ends of lines and indentation do not count in quotes; all else
// does. Paths are as git has them: no symbolic link or submodule is followed.
// What was so before the change is marked as unchanged.
package evidence
