// Package records says how decisions look as files.
//
// [Targets] makes the files of one intent of its view: the intent itself, its tasks,
// reviews, the report of an audit and the history of its runs. Two files are shared by
// all intents: [Notebook] keeps observations.yaml, [Overview] keeps state.yaml. Each
// remembers its last content, because few of many entries change at a time.
//
// The types named ...Doc and ...Row are the formats. Their fields' comments are the
// descriptions in the JSON Schemas (package schemas), which are made of them:
//
//	go test ./forgedir/schemas -rewrite
package records
