// Package streams declares every stream: its name, what it stores, for how long, and in
// how much room. The bus makes the streams that are missing from these declarations, so
// there is no second place that says what a stream is.
package streams
