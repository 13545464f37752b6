import { Button } from './button.tsx'
import type { IconName } from './icon.tsx'

/** Something that can be done with one thing of many: an icon in its row, with words where there is room for them. */
export const ActionButton = (props: {
  icon: IconName
  text: string
  /** What it is done with, for those who do not see the row. */
  of: string
  spacious?: boolean | undefined
  onClick: () => unknown
}) =>
  props.spacious ? (
    <Button icon={props.icon} onClick={props.onClick}>
      {props.text}
    </Button>
  ) : (
    <Button
      kind="quiet"
      small
      icon={props.icon}
      label={`${props.text} ${props.of}`}
      onClick={props.onClick}
    />
  )
