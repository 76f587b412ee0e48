//! Visitors that hand on to others what they receive.

/// Writes the methods of a [`Visitor`](kymo_model::Visitor) but those of structures: each hands on what
/// it receives, if the expression made of `self` and the field is `Some` visitor.
macro_rules! hand_on_values {
    ($self:ident, $field:ident => $to:expr) => {
        $crate::hand_on::hand_on! { $self, $field => $to;
            uint(value: u64);
            sint(value: i64);
            wide(value: kymo_model::Wide<'_>);
            float(value: f64);
            float128(bits: u128);
            boolean(value: bool);
            bits(value: u64);
            text(text: &[u8]);
            blob(bytes: &[u8]);
            begin_array(length: u64);
            end_array();
            begin_optional(present: bool, selector: u64);
            end_optional();
            begin_variant(selected: u32, selector: u64);
            end_variant();
        }
    };
}

/// The same for some methods.
macro_rules! hand_on {
    ($self:ident, $field:ident => $to:expr;
     $($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            #[inline]
            fn $name(&mut $self, $field: kymo_model::FieldId $(, $argument: $type)*) {
                if let Some(to) = $to {
                    kymo_model::Visitor::$name(to, $field $(, $argument)*);
                }
            }
        )*
    };
}

pub(crate) use {hand_on, hand_on_values};
