package git

import "context"

// Operation names a part of git's work that takes the time of a network or of many files. The
// values are all there are: one becomes the name of a span, and no caller makes up another.
type Operation string

// The operations. Those that talk to an origin are named as git's own commands.
const (
	OpFetch    Operation = "fetch"
	OpPush     Operation = "push"
	OpList     Operation = "ls-remote"
	OpRebase   Operation = "rebase"
	OpMerge    Operation = "merge"
	OpCheckout Operation = "checkout" // a working tree is brought to a commit
	OpCollect  Operation = "collect"  // what an agent left is taken into the store
	OpTidy     Operation = "tidy"     // packs and refs of a clone are put together
)

// Observer is told when an operation begins, and by end how it ended; nil: it succeeded. What
// the operation does runs under the returned context.
type Observer func(ctx context.Context, op Operation) (_ context.Context, end func(error))

// observerKey is the context key of an Observer.
type observerKey struct{}

// WithObserver returns a context whose operations are reported to an Observer. A nil o removes the
// Observer: callers use that for operations that they repeat every few seconds.
func WithObserver(ctx context.Context, o Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, o)
}

// Begin tells the Observer of ctx that an operation begins. It costs a look at ctx where there
// is none. end must be called.
func Begin(ctx context.Context, op Operation) (_ context.Context, end func(error)) {
	if o, _ := ctx.Value(observerKey{}).(Observer); o != nil {
		return o(ctx, op)
	}
	return ctx, func(error) {}
}
