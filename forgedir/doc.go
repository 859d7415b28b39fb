// Package forgedir keeps the folders .forge and .e8 of local mode: the text that a
// person writes there becomes events, and decisions become files.
//
// Whoever drives it goes round in this order: Drafts, with drafts.CheckDependencies,
// and Edits; publish the events; Decided with their rulings; Write for every intent of
// which Projected is not the journal's last sequence; WriteState.
//
// The journal is the truth; the files are its projection and a person's desk. Whatever
// of these a person removes is written again, and losing .forge/cache loses no edit
// (TestRemovedFoldersComeBack, TestNoEditIsLost).
//
// [Dir] only puts the parts together. Each is a package of its own:
//
//	layout      the names of files and folders
//	disk        reading, writing and moving files safely
//	person      inputs and problems: the two things that come of a person's file
//	drafts      .forge/intent-drafts/*.md, in
//	edits       .forge/intents/*.yaml, in
//	projection  which version of a file is ours, a person's or decided; putting
//	            the next one in place without losing a person's
//	records     views as files: intents, tasks, reviews, reports, history,
//	            observations.yaml, state.yaml
//	goals       .e8: lines and logs of goals
//	schemas     the JSON Schemas of all of them; schematest checks files by them
//
// A reader who wants to know what happens to a draft begins with drafts; whoever wants
// to know why a file was not overwritten, with projection.
package forgedir
