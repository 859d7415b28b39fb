package bus

// Limit makes the object store take less.
func (o *Objects) Limit(bytes uint64) { o.most = bytes }
