// Package objects keeps files that workers hand on to one another, and whole transcripts,
// in NATS object stores. An object is replaced as a whole: whoever reads sees the old
// content or the new one, and a failed [Store.Put] leaves the old one in place.
//
// [Store.Update] changes an object on condition that it is still what was read.
package objects
