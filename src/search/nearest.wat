;; What is measured most often, eight or sixteen numbers at a time. All addresses and strides are in bytes; a stride is a
;; multiple of 64. `bun scripts/wasm.ts` makes nearest.wasm of it; a test compares the two.
(module
  (import "js" "memory" (memory 1))

  ;; Sums for 16 rows a block: of each byte of a row its low half looked up in one table of 16 bytes and its high half in the
  ;; next. A block holds byte 0 of its 16 rows, then byte 1 and so on. Writes 16-bit sums; two entries must not exceed 255.
  (func (export "sums") (param $bits i32) (param $blocks i32) (param $bytes i32) (param $tables i32) (param $out i32)
    (local $left i32) (local $table i32) (local $v v128) (local $low v128) (local $high v128)
    (block $done
      (loop $block
        (br_if $done (i32.eqz (local.get $blocks)))
        (local.set $low (v128.const i64x2 0 0))
        (local.set $high (v128.const i64x2 0 0))
        (local.set $left (local.get $bytes))
        (local.set $table (local.get $tables))
        (loop $byte
          (local.set $v (v128.load (local.get $bits)))
          (local.set $v
            (i8x16.add
              (i8x16.swizzle
                (v128.load (local.get $table))
                (v128.and (local.get $v) (v128.const i8x16 15 15 15 15 15 15 15 15 15 15 15 15 15 15 15 15)))
              (i8x16.swizzle
                (v128.load offset=16 (local.get $table))
                (i8x16.shr_u (local.get $v) (i32.const 4)))))
          (local.set $low (i16x8.add (local.get $low) (i16x8.extend_low_i8x16_u (local.get $v))))
          (local.set $high (i16x8.add (local.get $high) (i16x8.extend_high_i8x16_u (local.get $v))))
          (local.set $bits (i32.add (local.get $bits) (i32.const 16)))
          (local.set $table (i32.add (local.get $table) (i32.const 32)))
          (local.set $left (i32.sub (local.get $left) (i32.const 1)))
          (br_if $byte (local.get $left)))
        (v128.store (local.get $out) (local.get $low))
        (v128.store offset=16 (local.get $out) (local.get $high))
        (local.set $out (i32.add (local.get $out) (i32.const 32)))
        (local.set $blocks (i32.sub (local.get $blocks) (i32.const 1)))
        (br $block))))

  ;; Dot products of a query with the rows listed, numbers of 32 bits.
  (func (export "dots") (param $rows i32) (param $n i32) (param $vectors i32) (param $stride i32) (param $query i32) (param $out i32)
    (local $at i32) (local $end i32) (local $q i32) (local $a v128) (local $b v128)
    (block $done
      (loop $row
        (br_if $done (i32.eqz (local.get $n)))
        (local.set $at (i32.add (local.get $vectors) (i32.mul (i32.load (local.get $rows)) (local.get $stride))))
        (local.set $end (i32.add (local.get $at) (local.get $stride)))
        (local.set $q (local.get $query))
        (local.set $a (v128.const i64x2 0 0))
        (local.set $b (v128.const i64x2 0 0))
        (loop $eight
          (local.set $a (f32x4.add (local.get $a) (f32x4.mul (v128.load (local.get $at)) (v128.load (local.get $q)))))
          (local.set $b (f32x4.add (local.get $b) (f32x4.mul (v128.load offset=16 (local.get $at)) (v128.load offset=16 (local.get $q)))))
          (local.set $at (i32.add (local.get $at) (i32.const 32)))
          (local.set $q (i32.add (local.get $q) (i32.const 32)))
          (br_if $eight (i32.lt_u (local.get $at) (local.get $end))))
        (local.set $a (f32x4.add (local.get $a) (local.get $b)))
        (f32.store (local.get $out)
          (f32.add
            (f32.add (f32x4.extract_lane 0 (local.get $a)) (f32x4.extract_lane 1 (local.get $a)))
            (f32.add (f32x4.extract_lane 2 (local.get $a)) (f32x4.extract_lane 3 (local.get $a)))))
        (local.set $rows (i32.add (local.get $rows) (i32.const 4)))
        (local.set $out (i32.add (local.get $out) (i32.const 4)))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br $row))))

  ;; The same with rows of signed bytes and a query of 16-bit integers: 32-bit sums.
  (func (export "codeDots") (param $rows i32) (param $n i32) (param $codes i32) (param $stride i32) (param $query i32) (param $out i32)
    (local $at i32) (local $end i32) (local $q i32) (local $v v128) (local $a v128) (local $b v128)
    (block $done
      (loop $row
        (br_if $done (i32.eqz (local.get $n)))
        (local.set $at (i32.add (local.get $codes) (i32.mul (i32.load (local.get $rows)) (local.get $stride))))
        (local.set $end (i32.add (local.get $at) (local.get $stride)))
        (local.set $q (local.get $query))
        (local.set $a (v128.const i64x2 0 0))
        (local.set $b (v128.const i64x2 0 0))
        (loop $sixteen
          (local.set $v (v128.load (local.get $at)))
          (local.set $a (i32x4.add (local.get $a)
            (i32x4.dot_i16x8_s (i16x8.extend_low_i8x16_s (local.get $v)) (v128.load (local.get $q)))))
          (local.set $b (i32x4.add (local.get $b)
            (i32x4.dot_i16x8_s (i16x8.extend_high_i8x16_s (local.get $v)) (v128.load offset=16 (local.get $q)))))
          (local.set $at (i32.add (local.get $at) (i32.const 16)))
          (local.set $q (i32.add (local.get $q) (i32.const 32)))
          (br_if $sixteen (i32.lt_u (local.get $at) (local.get $end))))
        (local.set $a (i32x4.add (local.get $a) (local.get $b)))
        (i32.store (local.get $out)
          (i32.add
            (i32.add (i32x4.extract_lane 0 (local.get $a)) (i32x4.extract_lane 1 (local.get $a)))
            (i32.add (i32x4.extract_lane 2 (local.get $a)) (i32x4.extract_lane 3 (local.get $a)))))
        (local.set $rows (i32.add (local.get $rows) (i32.const 4)))
        (local.set $out (i32.add (local.get $out) (i32.const 4)))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br $row)))))
