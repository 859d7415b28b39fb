package journal

// ReadOpen has a test read the open intents as of a message behind which the journals have gone on.
var ReadOpen = (*Journal).readOpen
