// Package reflection decides when a project reflects upon its finished runs, and
// which of the intents that a reflection proposes are submitted. One reflection runs at a
// time, so that nothing is read or proposed twice.
//
//	        Ended, Request               Start                  Result
//	idle -----------------> runs wait ----------> under way ---------------> idle, or runs wait
//	  ^                        |                   |     ^
//	  |                        | Skip              +-----+ Result: a failure that may pass
//	  +------------------------+ (no budget)         another attempt
//
// A proposal is submitted unless one of the bounds is against it (see propose). It
// is submitted again after every crash until its intent has entered the project.
package reflection
