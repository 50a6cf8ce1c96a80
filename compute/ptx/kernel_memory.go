package ptx

// Value declares a parameter and returns its value, loaded.
func (k *Kernel) Value(name string, t Type) Operand {
	if !k.usable() {
		return Operand{}
	}
	t = moved(t)
	v := &Variable{Space: Param, Type: t, Name: name}
	k.params = append(k.params, v)
	return k.Let("ld.param."+t.String(), MemoryOf(v, 0))
}

// Buffer declares a parameter that points to global memory and returns its value, loaded: an address in the space .global.
func (k *Kernel) Buffer(name string) Operand {
	return k.Let("cvta.to.global.u64", k.Value(name, U64))
}

// Shared declares an array in shared memory, of so many elements, aligned for vectors of 16 bytes.
func (k *Kernel) Shared(name string, t Type, count int) *Variable {
	if !k.usable() {
		return nil
	}
	v := &Variable{Space: Shared, Align: maxVectorBytes, Type: t, Name: name, Dims: []int{count}}
	if count < 1 {
		k.mistake("shared memory %s has %d elements", name, count)
	}
	k.variables = append(k.variables, v)
	return v
}

// DynamicShared declares an array in shared memory that the launch sizes. All kernels of a module have the same one.
func (k *Kernel) DynamicShared(name string) *Variable {
	if !k.usable() {
		return nil
	}
	v := &Variable{Linkage: Extern, Space: Shared, Align: maxVectorBytes, Type: B8, Name: name, Dims: []int{Unsized}}
	k.variables = append(k.variables, v)
	return v
}

// Element returns the memory of the element at an unsigned 32-bit index from a 64-bit address.
func (k *Kernel) Element(base, index Operand, elementBytes int) Operand {
	distance := k.Let("mul.wide.u32", index, Integer(int64(elementBytes)))
	return k.At(k.Let("add.u64", base, distance), 0)
}

// SharedElement returns the memory of the element at an index of 32 bits without a sign, of an array in shared memory.
func (k *Kernel) SharedElement(array *Variable, index Operand) Operand {
	if array == nil {
		k.mistake("there is no array")
		return Operand{}
	}
	base := k.Let("mov.u32", AddressOf(array))
	return k.At(k.Let("mad.lo.u32", index, Integer(int64(array.Type.Bytes())), base), 0)
}

// At returns the memory at an address in a register and an offset in bytes.
func (k *Kernel) At(address Operand, offsetBytes int64) Operand {
	if address.Kind != OperandRegister || address.Register == nil {
		k.mistake("address %v is no register", address)
		return Operand{}
	}
	return Memory(address.Register, offsetBytes)
}
