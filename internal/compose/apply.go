package compose

type node struct{ shared bool }
