package remote

// Replace is for tests.
var Replace = replace
