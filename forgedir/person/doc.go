// Package person has the two things that come of a file that a person wrote: an
// [Input], if the file asks for something, and [Problem]s, if it cannot be taken.
//
// A file makes either: one with a problem asks for nothing. Packages drafts and edits
// make inputs; whoever drives them publishes their events, and the rulings on these
// end the input, or turn it into a problem, which stays until the file changes
// ([Refusals]).
package person
