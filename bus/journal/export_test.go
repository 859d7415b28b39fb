package journal

// ReadOpen has a test read the open intents as of a message behind which the
// journals have gone on. Newest and ListAsOf are the same for lists.
var (
	ReadOpen = (*Journal).readOpen
	Newest   = (*Journal).newest
	ListAsOf = (*Journal).listAsOf
)
