//! Functions whose result may be of any size, however few rows they are asked for: `repeat`, `lpad`, `rpad` and
//! `array_repeat`. DataFusion makes the result before its memory is counted, so it is bounded here beforehand.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::{Result, exec_err};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature,
};
use kymo_text::counted;

/// Bytes that a function makes for the rows of a batch at most.
const MOST_BYTES: u64 = 256 << 20;

/// Puts bounds on the functions of a session.
pub(crate) fn bound(context: &SessionContext) {
    for name in ["repeat", "lpad", "rpad", "array_repeat"] {
        if let Ok(inner) = context.udf(name) {
            context.register_udf(ScalarUDF::from(Bounded { inner }));
        }
    }
}

/// A function whose second argument says how long its result is.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
}

impl Bounded {
    /// The bytes that the function is going to make.
    fn bytes(&self, args: &ScalarFunctionArgs) -> Result<u64> {
        let [value, count, ..] = &args.args[..] else {
            return Ok(0);
        };
        let is_constant = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let rows = match args.args.iter().all(is_constant) {
            true => 1,
            false => args.number_rows,
        };
        let counts = count.clone().into_array(rows)?;
        let counts = compute::cast(&counts, &DataType::Int64)?;
        let counts = counts.as_primitive::<Int64Type>();
        let sizes = match self.name() {
            "repeat" => {
                let texts = value.clone().into_array(rows)?;
                let sizes = compute::kernels::length::length(&texts)?;
                Some(compute::cast(&sizes, &DataType::Int64)?)
            }
            _ => None,
        };
        let sizes = sizes
            .as_ref()
            .map(|sizes| sizes.as_primitive::<Int64Type>());
        // Of an array's elements, that of a number; of what is filled up, that of a letter.
        let size = if self.name() == "array_repeat" { 8 } else { 1 };
        let of_row = |row: usize| {
            let count = match counts.is_null(row) {
                true => 0,
                false => u64::try_from(counts.value(row)).unwrap_or(0),
            };
            let size = match sizes {
                Some(sizes) if sizes.is_null(row) => 0,
                Some(sizes) => u64::try_from(sizes.value(row)).unwrap_or(0),
                None => size,
            };
            count.saturating_mul(size)
        };
        Ok((0..rows).map(of_row).fold(0, u64::saturating_add))
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, context)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let bytes = self.bytes(&args)?;
        if bytes > MOST_BYTES {
            return exec_err!(
                "{} would make {bytes} bytes for {} at once: the most is {MOST_BYTES}",
                self.name(),
                counted(args.number_rows as u64, "row")
            );
        }
        self.inner.invoke_with_args(args)
    }
}
