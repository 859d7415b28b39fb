package objects

// Limit makes the object store take less.
func (o *Store) Limit(bytes uint64) { o.most = bytes }
